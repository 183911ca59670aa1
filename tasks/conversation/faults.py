"""Whose fault a failed request is (design: faults of a conversation).

| request    | may pass later                     | the rest                                    |
|------------|------------------------------------|---------------------------------------------|
| perception | the prediction is lost, no more    | an unreadable prediction, which is wrong    |
| generation | infrastructure: raised             | the target's; a refused request is raised   |
| simulation | infrastructure: raised             | the simulator's                             |

A raised failure makes the conversation a reject (see `task`). A target that says no in words, or whose words
stay cut off, has answered. A *request* that the provider turns down without a word is a wrong parameter or
account, and nobody's turn.
"""

from __future__ import annotations

from tasks.conversation.loop import Fault, Prediction
from tasks.foundation.errors import ModelError


def explain_lost_prediction(error: ModelError) -> Prediction:
    """What stands for a prediction that failed."""
    return Prediction(lost=error.kind if error.may_pass_later else None)


def explain_failed_answer(error: ModelError) -> Fault:
    """The target's fault; re-raises what is not."""
    if error.may_pass_later or error.kind == "refused":
        raise error
    return Fault("target", f"{error.kind}: {error}")


def explain_failed_user_turn(error: ModelError) -> Fault:
    """The simulator's fault; re-raises what is not."""
    if error.may_pass_later:
        raise error
    return Fault("simulator", f"{error.kind}: {error}")
