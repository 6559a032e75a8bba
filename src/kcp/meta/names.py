"""Names and identities made up by the server: generateName suffixes and uids.

Must not check whether a name is valid or taken.
"""

import os
import random
from typing import Final

# No vowels, no 0, 1 or 3: nothing that spells or can be misread.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_MAX_BASE_LENGTH: Final = 63 - _SUFFIX_LENGTH  # apiserver/pkg/storage/names: room for a DNS label
_VARIANTS: Final = "89ab"


def make_generated_name(generate_name: str) -> str:
    """A name from an object's `generateName`: cut to 58 characters, with five random ones behind."""
    return generate_name[:_MAX_BASE_LENGTH] + "".join(random.choices(_ALPHABET, k=_SUFFIX_LENGTH))


def make_uid() -> str:
    """A random UUID (version 4); written out here because `str(uuid.uuid4())` takes more than twice as long."""
    digits = os.urandom(16).hex()
    variant = _VARIANTS[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
