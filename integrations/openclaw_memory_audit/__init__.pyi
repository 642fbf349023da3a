from .entries import AuditError as AuditError, Entry as Entry
from .log import AccessLog as AccessLog, open_log as open_log
from .reading import Verdict as Verdict
from .settings import AuditConfig as AuditConfig
