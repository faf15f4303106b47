import json
import os

print(json.dumps({k: v for k, v in os.environ.items() if k.startswith("NOTES_")}))
