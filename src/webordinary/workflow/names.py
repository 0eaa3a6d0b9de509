"""The steps of the workflow by the names that its file calls them."""

STEPS = (
    "ParseEmail",
    "AuthenticateSender",
    "IdentifyProjectUser",
    "StoreAttachment",
    "RunCommand",
    "SendToContainer",
    "CheckOwnership",
    "SendClaimRequest",
    "CheckActiveJob",
    "SendInterrupt",
    "AwaitResult",
    "RecordInterruption",
    "HandleTimeout",
    "GiveUp",
    "Reply",
)
