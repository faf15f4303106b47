"""The broker limits the memory that it uses for all connections together. No other limit counts
this memory."""
import pathlib
import re

from net_fixtures import GRANT, net, outside, rule
from test_egress_broker import both_brokers
from test_egress_events import STEP, Live

# A ClientHello of almost 64 KiB that lacks its last bytes.
HELLOS = STEP + """
def hello():
    body = b'\\3\\3' + b'r' * 32 + b'\\0' + b'\\0\\2\\x13\\1' + b'\\1\\0'
    padding = 65000 - len(body) - 6
    body += (padding + 4).to_bytes(2, 'big') + b'\\0\\x15' + padding.to_bytes(2, 'big')
    body += bytes(padding)
    hello = b'\\1' + len(body).to_bytes(3, 'big') + body
    return b''.join(b'\\x16\\3\\1' + len(part).to_bytes(2, 'big') + part
                    for part in (hello[i:i + 16000] for i in range(0, len(hello), 16000)))
cut = hello()[:-100]
held, lost = [], 0
for i in range(COUNT):
    try:
        s = socket.create_connection(('api.example.test', 443), 30)
        s.settimeout(30)
        s.sendall(cut)
        held.append(s)
    except OSError:
        lost += 1
step(len(held))
print(json.dumps(lost), flush=True)
"""


def run(net, count):
    code = HELLOS.replace("COUNT", str(count))
    with Live(net, code, [rule("api.example.test", 443)],
              limits={"max_connections": 2000, "max_connections_per_second": 100000},
              resources={"max_open_files": 4096, "memory_mb": 64}) as live:
        live.line()
        status = pathlib.Path(f"/proc/{live.helper('broker')}/status").read_text()
        peak = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024
        live.go_on()
        live.end()
    return peak


def test_many_unfinished_hellos(net):
    few = run(net, 64)
    assert not net.blocked("no_memory"), "as many as there are without the owner's word"
    many = run(net, 900)
    told = net.blocked("no_memory")
    assert told and not net.runner.last_trace()["policy_violations"]
    assert net.times("network_egress_blocked", "no_memory") > 500
    assert many <= few + 24, f"{few} and {many} MB"
