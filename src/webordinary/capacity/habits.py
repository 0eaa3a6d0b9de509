"""How much of AWS one mail, one minute of a job and one idle hour of a worker use.

The numbers of calls are the bars that `benchmarks/aws_cost.py` holds the system to; what it measured can be given
instead. The services' shares are those of the steps in `workflow/email_processor.asl.json` and of a worker's loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webordinary.capacity.bounds import within

MOST_CALLS = 10_000


@dataclass(frozen=True, slots=True)
class Habit:
    """API calls that we make, and what they use of the price list."""

    calls: float
    usage: Mapping[str, float]

    def with_calls(self, calls: float) -> Habit:
        """The same habit with more or fewer calls of every kind."""
        within("calls", calls, 0, MOST_CALLS)
        return Habit(calls, {meter: units * calls / self.calls for meter, units in self.usage.items()})


PER_MAIL = Habit(
    45,  # 24 to DynamoDB, 10 to SQS, 7 to S3, 3 to Step Functions, 1 to SES
    {
        "dynamodb.write": 40,
        "dynamodb.read": 12,
        "sqs.standard": 5,
        "sqs.fifo": 5,
        "s3.put": 3,
        "s3.get": 4,
        "ses.out": 1,
    },
)
PER_JOB_MINUTE = Habit(
    8,  # the lease is renewed, interrupts and hints are asked for, the workflow is told that the job lives
    {"dynamodb.write": 3, "sqs.standard": 4},
)
PER_IDLE_HOUR = Habit(
    620,  # two queues polled by turns of 20 seconds, the lease renewed, a look at what others left
    {"dynamodb.write": 180, "dynamodb.read": 80, "sqs.standard": 180, "sqs.fifo": 180},
)

BESIDES_CALLS = {
    "ses.in": 1.0,
    "ses.in-chunk": 1.0,
    "ses.out-gb": 0.0002,
    "states.transition": 16.0,
    "lambda.request": 11.0,
    "lambda.gb-second": 11 * 0.15 * 0.125,
    "s3.gb-month": 0.0004,
}
"""Of one mail: what nobody calls but AWS itself. A mail of 400 KB kept for a month, functions of 128 MB and 150 ms."""
EACH_MINUTE = {"lambda.request": 1.0, "lambda.gb-second": 0.125, "dynamodb.read": 10.0}
"""Whatever happens: the reconciler."""


@dataclass(frozen=True, slots=True)
class Habits:
    """All three."""

    mail: Habit
    job_minute: Habit
    idle_hour: Habit


MEETING_THE_BARS = Habits(PER_MAIL, PER_JOB_MINUTE, PER_IDLE_HOUR)
