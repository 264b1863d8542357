"""Metrics for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from .service import Service

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class Metrics:
    """Metrics of the service at the time of the request, and durations of requests."""

    def __init__(self, service: Service):
        self.service = service
        registry = CollectorRegistry()
        self.seconds = Histogram(
            "kernling_request_seconds", "Time to answer", ("request", "status"), buckets=SECONDS, registry=registry
        )
        registry.register(self)
        self._registry = registry

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """Yield all metrics; called by Prometheus's registry."""
        yield from self._of_requests()
        yield from self._of_models()

    def _of_requests(self) -> Iterator[Any]:
        """Yield what has been counted since the start."""
        service = self.service
        yield GaugeMetricFamily("kernling_queue_rows", "Rows waiting to be learned", service.jobs.waiting)
        events = CounterMetricFamily("kernling_rows", "Rows since the start, by outcome", labels=("model", "what"))
        for (name, what), count in list(service.counts.items()):
            if name in service.models:  # others are names that were refused
                events.add_metric((name, what), count)
        yield events
        alarms = CounterMetricFamily("kernling_alarms", "Alarms since the start, by what has changed", labels=("model", "what"))
        for named, count in list(service.alarms.items()):
            alarms.add_metric(named, count)
        yield alarms
        if service.webhook is not None:
            posted = CounterMetricFamily("kernling_alarm_posts", "Alarms posted since the start", labels=("what",))
            for what in ("sent", "lost"):
                posted.add_metric((what,), service.webhook.counts[what])
            yield posted

    def _of_models(self) -> Iterator[Any]:
        """Yield facts of the models and of their sources."""
        gauges = {
            "events": "Events learned",
            "lately": "Mistake rate, or root mean squared error, in the sliding window",
            "constant_lately": "The same for a constant answer",
            "points": "Points stored",
            "bytes": "Memory of the model",
            "collected": "Events that wait until their model starts",
            "lost": "Events lost by damage to files",
            "waiting": "Rows waiting for their labels",
            "evicted": "Rows whose labels did not arrive in time, since the start",
        }
        families = {name: GaugeMetricFamily(f"kernling_{name}", text, labels=("model",)) for name, text in gauges.items()}
        feeds = {
            "behind": GaugeMetricFamily("kernling_source_behind", "Events of a source to be read", labels=("model", "source")),
            "rate": GaugeMetricFamily("kernling_source_rate", "Events read per second", labels=("model", "source")),
        }
        up = GaugeMetricFamily("kernling_source_up", "Whether a source is being read", labels=("model", "source"))
        fed = CounterMetricFamily("kernling_source_events", "Events since the start", labels=("model", "source", "what"))
        dead = GaugeMetricFamily("kernling_dead_letters", "Events of sources that were set aside", labels=("model",))
        for model in list(self.service.models.values()):
            facts = self.service.facts(model)
            dead.add_metric((model.name,), facts["letters"]["count"])
            for source in facts["sources"]:
                named = (model.name, source["source"])
                up.add_metric(named, float(source["is_read"]))
                for what, count in source["counts"].items():
                    fed.add_metric((*named, what), count)
                for name, family in feeds.items():
                    if source[name] is not None:
                        family.add_metric(named, source[name])
            for name, family in families.items():
                if facts.get(name) is not None:
                    family.add_metric((model.name,), facts[name])
        yield from (*families.values(), *feeds.values(), up, fed, dead)


class Timed:
    """ASGI middleware that measures the time until responses start."""

    def __init__(self, app: Any, metrics: Metrics):
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Awaitable[None]]) -> None:
        begin = time.perf_counter()

        async def note(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                route = scope.get("route")
                what = f"{scope['method']} {route.path}" if route else "other"
                self.metrics.seconds.labels(what, str(message["status"])).observe(time.perf_counter() - begin)
            await send(message)

        await self.app(scope, receive, note if scope["type"] == "http" else send)
