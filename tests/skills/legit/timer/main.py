import sys
import time

for left in range(int(sys.argv[1]), 0, -1):
    print(left, flush=True)
    time.sleep(0.05)
print("done")
