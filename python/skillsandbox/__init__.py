"""Loads agent skills and runs them in a sandbox, never in this process.

    from skillsandbox import SkillLoader

    bundle = SkillLoader.load_skill("office/pdf_form_filler")
    with bundle["class"]() as skill:
        print(skill.execute({"text": "hello"}))

skillsandbox.tiers describes what a skill gets; Session gives an agent a budget.
"""
from ._errors import (SessionError, SessionKilled, SessionRefused, SkillCrashed, SkillDenied,
                      SkillError, SkillManifestError, SkillNotFound, SkillNotStarted,
                      SkillSandboxError, SkillTimeout, SkillwareParamValidationError,
                      SkillWithheld, TrustWarning)
from ._proxy import SkillProxy
from .loader import SkillLoader
from .session import Reservation, Session

__all__ = ["Reservation", "Session", "SessionError", "SessionKilled", "SessionRefused", "SkillCrashed", "SkillDenied",
           "SkillError", "SkillLoader", "SkillManifestError", "SkillNotFound", "SkillNotStarted",
           "SkillProxy", "SkillSandboxError", "SkillTimeout", "SkillWithheld",
           "SkillwareParamValidationError", "TrustWarning"]
