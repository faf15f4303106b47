import json
import os

from skillware.core.base_skill import BaseSkill

from rules import greeting


class GreeterSkill(BaseSkill):
    @property
    def manifest(self):
        return {"name": "office/greeter", "version": "0.3.1"}

    def execute(self, params):
        print("about to greet")  # printed text is not part of the result
        with open(os.path.join(os.path.dirname(__file__), "kb", "titles.json")) as f:
            titles = json.load(f)
        if "who" not in params:
            return {"status": "error", "error": "whom?"}
        return {"greeting": greeting(titles.get(params["who"], ""), params["who"]),
                "token": self.credential("GREETER_TOKEN")}
