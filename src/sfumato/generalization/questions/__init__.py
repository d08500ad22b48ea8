# SPDX-License-Identifier: Apache-2.0
"""Personal minimization: ask one person only what can still change the decision of a model."""

from sfumato.generalization.questions.questionnaire import Interviews, NextQuestion, Questionnaire

__all__ = ["Interviews", "NextQuestion", "Questionnaire"]
