"""weather [CITY] - the current weather of a city.

Asks api.openweathermap.org with the owner's key. Where the network is not
there it answers from the data that comes with the skill, and says so.
"""
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

URL = "https://api.openweathermap.org/data/2.5/weather"
BUNDLED = {
    "berlin": (11.0, "overcast clouds"),
    "london": (9.5, "light rain"),
    "san francisco": (14.2, "fog"),
    "tokyo": (17.8, "clear sky"),
}


def ask(city, key):
    query = urllib.parse.urlencode({"q": city, "units": "metric", "appid": key})
    with urllib.request.urlopen(f"{URL}?{query}", timeout=5) as reply:
        data = json.load(reply)
    return data["main"]["temp"], data["weather"][0]["description"]


def weather(city):
    key = os.environ.get("OPENWEATHER_API_KEY")
    reason = "no OPENWEATHER_API_KEY"
    if key:
        try:
            return (*ask(city, key), "api.openweathermap.org")
        except (OSError, ValueError, KeyError) as e:
            reason = f"network: {e}"
    temperature, sky = BUNDLED.get(city.lower(), BUNDLED["berlin"])
    return temperature, sky, f"bundled data ({reason})"


if __name__ == "__main__":
    name = " ".join(sys.argv[1:]) or "Berlin"
    degrees, description, source = weather(name)
    print(f"{name}: {degrees:.1f} °C, {description} [source: {source}]")
