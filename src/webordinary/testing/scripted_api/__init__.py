"""A Messages API on loopback that answers from a script, so that a real agent can be tried without a key.

    with ScriptedApi([Use("Read", {"file_path": "/site/index.html"}), Say("It is a pottery.")]) as api:
        ...  # run the agent with ANTHROPIC_BASE_URL=api.url and any ANTHROPIC_API_KEY
        assert api.requests[0].offers("Read")

On the paths of Bedrock (ANTHROPIC_BEDROCK_BASE_URL) and Vertex (ANTHROPIC_VERTEX_BASE_URL) it answers in their ways.
Each request that offers tools takes the next turn of the script; the agent's side requests get a fixed text.
"""

from webordinary.testing.scripted_api.requests import Received
from webordinary.testing.scripted_api.server import ScriptedApi
from webordinary.testing.scripted_api.turns import Fail, Say, Script, Stall, Turn, Use

__all__ = ["Fail", "Received", "Say", "Script", "ScriptedApi", "Stall", "Turn", "Use"]
