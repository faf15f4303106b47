"""Sessions of the Python package, on the real store."""
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
