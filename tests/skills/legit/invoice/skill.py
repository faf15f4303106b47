import json
import os

from skillware.core.base_skill import BaseSkill


class Invoice(BaseSkill):
    def __init__(self, config=None):
        super().__init__(config)
        with open(os.path.join(os.path.dirname(__file__), "data", "tax.json")) as f:
            self.tax = json.load(f)

    @property
    def manifest(self):
        return {"name": "finance/invoice"}

    def execute(self, params):
        net = sum(item["price"] * item.get("count", 1) for item in params["items"])
        return {"total": round(net * (100 + self.tax["de"]) / 100, 2)}
