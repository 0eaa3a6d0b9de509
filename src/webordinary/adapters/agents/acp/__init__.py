"""Any agent that speaks the Agent Client Protocol, through `agent-client-protocol`; imported when a job needs it."""
