from .age import AgeCodec as AgeCodec
from .index import (
    decrypt_index as decrypt_index,
    encrypt_index as encrypt_index,
    KeyChange as KeyChange,
    rotate_index_key as rotate_index_key,
)
