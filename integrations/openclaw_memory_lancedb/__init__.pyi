from .collection import LanceEntries as LanceEntries
from .entries import CATEGORIES as CATEGORIES, Category as Category, MemoryEntry as MemoryEntry
