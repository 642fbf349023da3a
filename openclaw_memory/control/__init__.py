"""What a person does with a memory as a whole: look at everything in it, and forget for good."""

from openclaw_memory.types.control import ForgetPlan, ForgetReceipt, Item

__all__ = ["ForgetPlan", "ForgetReceipt", "Item"]
