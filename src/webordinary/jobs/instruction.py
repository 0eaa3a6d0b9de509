"""The Instruction of a job, and the agent session of its thread."""

from __future__ import annotations

from dataclasses import dataclass

from webordinary.mail.parsing.commands import named_change, own_words
from webordinary.mail.ports import AttachmentManifest, ParsedMails, Threads
from webordinary.model.errors import Permanent
from webordinary.model.jobs import Job
from webordinary.model.mail import Attachment, Command, Instruction, ParsedMail
from webordinary.model.names import job_id_of


@dataclass(frozen=True, slots=True)
class Instructions:
    """Reads instructions from stored mails."""

    parsed_mails: ParsedMails
    manifest: AttachmentManifest
    threads: Threads

    def of(self, job: Job) -> Instruction:
        """The customer's request, with the accepted attachments."""
        mail = self.parsed_mails.load(job.email_id)
        if mail is None:
            raise Permanent(f"job {job.job_id}: its mail {job.email_id} was never parsed; was a backup restored?")
        lines = self.manifest.of(job.email_id) if mail.attachment_count else ()
        files = tuple(line for line in lines if isinstance(line, Attachment)) if lines else ()
        named, answers = self._change_to_undo(mail) if job.command is Command.UNDO else ("", "")
        if job.command is Command.PUBLISH:
            named = named_change(mail.text, mail.subject, mail.sender_name)
        return Instruction(mail.text, own_words(mail.subject), mail.sender, job.command, files, named, answers)

    def _change_to_undo(self, mail: ParsedMail) -> tuple[str, str]:
        """The change that an `undo` names in its text, and the job whose answer it replies to."""
        answered = self.threads.mail_of((*mail.in_reply_to, *mail.references[-1:]))  # earlier references: whole thread
        return named_change(mail.text, mail.subject, mail.sender_name), job_id_of(answered) if answered else ""


@dataclass(frozen=True, slots=True)
class ThreadSessions:
    """Stores an agent's session with the mail thread that it belongs to."""

    threads: Threads

    def session_of(self, thread_id: str) -> str:
        thread = self.threads.get(thread_id)
        return thread.agent_session if thread else ""

    def keep_session(self, thread_id: str, session: str) -> None:
        self.threads.save_session(thread_id, session)
