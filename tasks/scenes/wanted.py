"""Which dialogues are worth distilling: of a certain length, and neither advertising nor full of links."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tasks.foundation.settings import ScenesSection
from tasks.scenes.reading import Unwanted

_URL = re.compile(r"https?://|www\.\w|\b[a-z0-9-]{2,}\.(?:com|net|org|cn|io)\b(?:/\S*)?|t\.cn/\w", re.IGNORECASE)
_ADVERT = re.compile(
    r"加(?:我|一下)?(?:微信|v信|薇信|扣扣|qq)|微信号|公众号|扫码(?:关注|加|领)|点击(?:链接|下方|领取)|转发抽奖|限时(?:优惠|特价|抢购)"
    r"|优惠券|领券|代购|诚招(?:代理|加盟)|包邮"
    r"|click (?:here|the link|below)|promo(?:tion)? code|discount code|limited[- ]time offer|subscribe (?:to|now)"
    r"|order now|buy now|free shipping|visit our (?:web)?site",
    re.IGNORECASE,
)


def refuse_unwanted(texts: Sequence[str], section: ScenesSection) -> None:
    """Unwanted for a dialogue outside the length bounds, with a URL or with the phrases of an advert."""
    if len(texts) < section.min_turns:
        raise Unwanted("too_short", f"expected at least {section.min_turns} turns, found {len(texts)}")
    length = sum(map(len, texts))
    if len(texts) > section.max_turns or length > section.max_characters:
        raise Unwanted(
            "too_long",
            f"expected at most {section.max_turns} turns and {section.max_characters} characters, "
            f"found {len(texts)} and {length}",
        )
    for why, pattern in (("url", _URL), ("advert", _ADVERT)):
        found = next((match[0] for text in texts if (match := pattern.search(text))), None)
        if found is not None:
            raise Unwanted("url" if why == "url" else "advert", f"expected talk between two people, found {found!r}")
