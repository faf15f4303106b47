"""Sessions of the Python package, on the real store."""
import json
import textwrap

import python_world


def test_a_session_holds_a_program_to_its_budget(ssb):
    world = python_world.World(ssb)
    policy = ssb.write(ssb.work / "session.yaml", """\
        budget: {max_cost_per_session: 1.0, max_cost_per_action: 0.5, on_exceed: block}
        violations: {thresholds: {pii: 2}}
        """)
    found, _ = world.program("-", f"""
        s = Session.start(policy={str(policy)!r}, agent="tester")
        with s.check("a", 0.4) as r:
            r.settle("0.1")
        with s.check("b", "0.2"):
            pass
        def failing():
            with s.check("c", 0.4):
                raise KeyError("x")
        released = caught(failing)
        middle = s.show()
        dear = caught(s.check, "d", 0.6)
        s.check("e", 0.5)
        full = caught(s.check, "f", 0.3)
        unknown = caught(Session("nobody").check, "x", 0.1)
        negative = caught(s.check, "g", -1)
        price = caught(s.check, "h", model="no-such-model", tokens_in=1, tokens_out=1)
        twice = caught(r.settle, 1)
        first = s.violation("pii", "seen")
        def scanned():
            with s.violations("pii", ValueError):
                raise ValueError("found it")
        second = caught(scanned)
        after = caught(s.check, "i", 0.01)
        broken = caught(Session(s.id, binary="/nonexistent").check, "x")
        out(released=released, total=middle["total_cost_usd"], reserved=middle["reserved_usd"],
            dear=dear, full=full, unknown=unknown, negative=negative, price=price, twice=twice,
            first=first["action_allowed"], second=second, after=after, broken=broken)
    """)
    assert found["released"]["raised"] == "KeyError"
    assert float(found["total"]) == 0.3 and float(found["reserved"]) == 0
    assert found["dear"]["raised"] == found["full"]["raised"] == "SessionRefused"
    for name in ("unknown", "negative", "price", "twice", "broken"):
        assert found[name]["raised"] == "SessionError", (name, found[name])
    assert found["first"] is True
    assert found["second"]["raised"] == found["after"]["raised"] == "SessionKilled"


# Texts of a skill's exceptions. Each exception is one violation, and the last one reaches the
# session's limit of violations.
LOUD = ["\u6f22" * 1400, "\u6f22" * 5000, "x" * 70000, "\x00nothing", "\ud800 half",
        "\udcff byte", "\x1b[31m\n\u202e", ""]


def test_a_violation_is_counted_whatever_a_skill_says(ssb):
    """Each violation counts, whatever its length, its characters and the caller's locale."""
    world = python_world.World(ssb)
    policy = ssb.write(ssb.work / "session.yaml",
                       f"violations: {{thresholds: {{loud: {len(LOUD)}}}}}\n")
    code = f"""
        s = Session.start(policy={str(policy)!r})
        def fail(text):
            with s.violations("loud", SkillError):
                raise SkillError("ValueError", text)
        told = [caught(fail, text)["raised"] for text in json.loads(sys.argv[2])]
        raw = Session.start()
        plain = [caught(raw.violation, "loud", text) for text in json.loads(sys.argv[2])]
        state, kept = s.show()["state"], [v["details"] for v in raw.show()["violations"]
                                          if v.get("details")]
        ended = [caught(Session.start().kill, text).get("result", {{}}).get("state")
                 for text in json.loads(sys.argv[2])]
        out(told=told, state=state, plain=[p.get("raised") for p in plain], kept=kept,
            ended=ended, count=raw.show()["violation_counts"])
    """
    for env in ({}, {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}):
        found, _ = world.program("-", f"sys.argv.append({json.dumps(LOUD)!r})\n" +
                                 textwrap.dedent(code), env=env)
        assert found["told"] == ["SkillError"] * (len(LOUD) - 1) + ["SessionKilled"], found
        assert found["state"] == "killed" and found["plain"] == [None] * len(LOUD)
        assert set(found["ended"]) == {"killed"} and found["count"] == {"loud": len(LOUD)}
        assert all(len(k.encode()) < 4096 for k in found["kept"])
        assert any(k.startswith("\u6f22") and len(k) > 1300 for k in found["kept"])


def test_a_violation_with_an_invalid_text_is_counted(ssb):
    world = python_world.World(ssb)
    found, _ = world.program("-", """
        class Mute(ValueError):
            def __str__(self):
                raise RuntimeError("no text")
        class Odd(ValueError):
            def __str__(self):
                return 3
        s = Session.start()
        def fail(e):
            with s.violations("loud", ValueError):
                raise e
        def kind(e):
            try:
                fail(e)
            except Exception as other:
                return type(other).__name__
        told = [kind(e) for e in (Mute(), Odd(), ValueError("fine"))]
        shown = s.show()
        out(told=told, count=shown["violation_counts"],
            kept=[v.get("details") for v in shown["violations"]])
    """)
    assert found["told"] == ["Mute", "Odd", "ValueError"], found
    assert found["count"] == {"loud": 3}
    assert sorted(found["kept"]) == ["Mute", "Odd", "ValueError: fine"]


def test_what_costs_less_than_a_micro_dollar_is_not_free(ssb):
    world = python_world.World(ssb)
    found, _ = world.program("-", """
        from decimal import Decimal
        s = Session.start()
        def cost(*amounts):
            before = s.show()["total_cost_usd"]
            for a in amounts:
                s.check("a", a).settle(a)
            return round(float(s.show()["total_cost_usd"]) - float(before), 7)
        bad = [caught(s.check, "b", v).get("raised") for v in
               (float("nan"), float("inf"), -4e-7, 1e300, Decimal("1e400"), "4e-7", "0.0000004")]
        out(tiny=cost(4e-7), least=cost(1e-12), dec=cost(Decimal("0.0000011")), zero=cost(0, 0.0),
            exact=cost(0.1 + 0.2, "0.5", Decimal("0.25")), bad=bad)
    """)
    assert (found["tiny"], found["least"], found["dec"], found["zero"], found["exact"]) == \
        (1e-6, 1e-6, 2e-6, 0, 1.05)
    assert found["bad"] == ["SessionError"] * 7
