"""What happened, as a lambda tells it: structured log lines and counts in CloudWatch's embedded format."""

from __future__ import annotations

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import Metrics, MetricUnit

from webordinary.adapters.aws.names import METRICS, METRICS_SERVICE
from webordinary.model.events import Event


class Telling:
    """See Events: a line each, and a count that leaves with `flush`."""

    def __init__(self, function: str) -> None:
        self.log = Logger(service=function)
        self._metrics = Metrics(namespace=METRICS, service=METRICS_SERVICE)

    def emit(self, event: Event) -> None:
        """See Events."""
        known = {
            "event": event.kind,
            "email_id": event.email_id,
            "job_id": event.job_id,
            "key": event.key and str(event.key),
            "data": dict(event.data),
        }
        self.log.info(event.kind, extra={name: value for name, value in known.items() if value})
        self._metrics.add_metric(name=event.kind, unit=MetricUnit.Count, value=1)

    def flush(self) -> None:
        """Write the counts of this invocation."""
        if self._metrics.provider.metric_set:
            self._metrics.flush_metrics()
