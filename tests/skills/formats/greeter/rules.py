def greeting(title, name):
    return " ".join(w for w in ("Good day,", title, name) if w)
