"""The audit: every published number, recomputed or looked up, with a verdict that follows from stated rules."""

from inside_deepinfer.audit import rules
from inside_deepinfer.audit.records import as_record, plain
from inside_deepinfer.audit.run import Finding, audit, audit_claim, finding

RULES = (rules.__doc__ or "").strip()

__all__ = ["RULES", "Finding", "as_record", "audit", "audit_claim", "finding", "plain"]
