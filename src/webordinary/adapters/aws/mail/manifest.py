"""Which files came with a mail: one item per position."""

from __future__ import annotations

from webordinary.adapters.aws.mail.mail_items import MailItems
from webordinary.adapters.aws.writes import put
from webordinary.mail.records import attachment_from_json, attachment_to_json
from webordinary.model.mail import Attachment, RefusedAttachment

_PREFIX = "attachment#"


class AwsAttachmentManifest:
    """See AttachmentManifest."""

    def __init__(self, items: MailItems) -> None:
        self._items = items

    def save(self, email_id: str, position: int, record: Attachment | RefusedAttachment) -> None:
        """See AttachmentManifest."""
        item = self._items.item(email_id, f"{_PREFIX}{position:04d}", {"record": attachment_to_json(record)})
        what = f"keeping what file {position} of mail {email_id} is"
        self._items.dynamo.write(what, put(self._items.table, item))

    def of(self, email_id: str) -> tuple[Attachment | RefusedAttachment, ...]:
        """See AttachmentManifest."""
        found = self._items.beginning(f"reading which files mail {email_id} has", email_id, _PREFIX)
        return tuple(attachment_from_json(item["record"]) for item in found)
