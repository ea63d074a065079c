"""Continuous batching, event by event.

Between two events (an arrival, an end, a prompt, full memory) the batch is the same, so that the
decode steps between them are one jump: fewer than three events a request. First come, first served;
prompts join the next step in pieces within the token budget; where memory is full the youngest
request is thrown out and its tokens are computed again.
"""

import heapq
import math
from collections import deque

from msgspec import Struct

from planner.serving.server import Server
from planner.serving.traffic import Requests


class Latencies(Struct, frozen=True, kw_only=True):
    """What the requests of one run saw, each list sorted.

    Attributes:
        first_token_s: to the first token.
        token_s: from one token to the next, mean of a request; answers of one token have none.
        request_s: to the last token.
        span_s: from the first arrival to the last token.
        busiest: most requests in the batch.
        running: requests in the batch, mean over the span.
        preempted: requests thrown out for memory.
    """

    first_token_s: list[float]
    token_s: list[float]
    request_s: list[float]
    span_s: float
    busiest: int
    running: float
    preempted: int

    def percentile(self, metric: str, percent: float) -> float:
        """Return a percentile of `ttft`, `tpot` or `e2e`, in seconds; straight between ranks."""
        values = {"ttft": self.first_token_s, "tpot": self.token_s, "e2e": self.request_s}[metric]
        if not values:
            return 0.0
        rank = (len(values) - 1) * percent / 100.0
        low = int(rank)
        high = min(low + 1, len(values) - 1)
        return values[low] + (values[high] - values[low]) * (rank - low)


def simulate(server: Server, requests: Requests) -> Latencies:
    """Return what requests see that one copy serves; each must fit its memory alone."""
    return _Run(server, requests).latencies()


class _Run:
    """The state of one copy; plain lists, for this is the inner loop."""

    def __init__(self, server: Server, requests: Requests) -> None:
        self.server, self.requests = server, requests
        self.step_s, self.kv_tokens = server.step_s, server.kv_tokens
        self.arrivals_s, count = requests.arrivals_s, len(requests.arrivals_s)
        self.now = requests.arrivals_s[0] if count else 0.0
        self.coming = 0  # the next to arrive
        self.waiting = deque[int]()
        self.ends: list[tuple[int, int]] = []  # the step at which a running request ends
        self.youngest: list[int] = []  # running requests in order of admission; ended ones linger
        self.sequences = self.steps = self.context = self.preempted = self.busiest = 0
        self.ends_at = [-1] * count
        self.left = list(requests.outputs)  # tokens still to give
        self.prompt = list(requests.computed)  # tokens still to compute before the next one
        self.cached = [
            total - fresh for total, fresh in zip(requests.prompts, requests.computed, strict=True)
        ]
        self.first = [-1.0] * count
        self.last = [0.0] * count
        self.running_s = 0.0

    def latencies(self) -> Latencies:
        """Return what the requests saw once the last one has ended."""
        arrivals, count = self.requests.arrivals_s, len(self.requests.arrivals_s)
        while self.coming < count or self.waiting or self.sequences:
            while self.coming < count and arrivals[self.coming] <= self.now:
                self.waiting.append(self.coming)
                self.coming += 1
            if not (self.waiting and self._take_prompts()):
                if self.sequences:
                    self._decode()
                else:
                    self.now = arrivals[self.coming]
        constant, outputs = self.server.first_token_s, self.requests.outputs
        waits = (first - start for first, start in zip(self.first, arrivals, strict=True))
        span = self.now - (arrivals[0] if count else 0.0)
        return Latencies(
            first_token_s=sorted(wait + constant for wait in waits),
            token_s=sorted(
                (last - first) / (tokens - 1)
                for first, last, tokens in zip(self.first, self.last, outputs, strict=True)
                if tokens > 1
            ),
            request_s=sorted(x - a + constant for x, a in zip(self.last, arrivals, strict=True)),
            span_s=span,
            busiest=self.busiest,
            running=self.running_s / span if span > 0 else 0.0,
            preempted=self.preempted,
        )

    def _take_prompts(self) -> bool:
        """Run one step with as much of the waiting prompts as fits; False where nothing does."""
        server, sequences, waiting = self.server, self.sequences, self.waiting
        admitted, tokens, pairs, complete = 0, 0, 0.0, list[int]()
        budget, room = server.token_budget - sequences, server.kv_tokens - self.context - sequences
        limit = server.max_sequences - sequences
        while waiting and budget > 0 and len(complete) < limit:
            head = waiting[0]
            fresh, before = self.prompt[head], self.cached[head]
            piece = min(budget, fresh)
            # The first of all was checked to fit.
            if piece + before > room - admitted and (sequences or complete):
                break
            budget -= piece
            tokens += piece
            pairs += piece * (before + piece / 2.0)
            self.prompt[head] = fresh - piece
            self.cached[head] = before + piece
            if piece < fresh:
                break
            admitted += before + piece
            complete.append(waiting.popleft())
        if not tokens:
            return False
        step_s = self.step_s(sequences, self.context, tokens, pairs)
        self.now += step_s
        self.running_s += step_s * sequences
        self.steps += 1
        self.context += sequences
        for request in complete:
            if self.first[request] < 0.0:
                self.first[request] = self.now
            self.context += self.cached[request] + 1
            self.ends_at[request] = end = self.steps + self.left[request] - 1
            heapq.heappush(self.ends, (end, request))
        self.youngest += complete
        self.sequences += len(complete)
        self.busiest = max(self.busiest, self.sequences)
        self._end()
        return True

    def _decode(self) -> None:
        """Run decode steps up to the next event."""
        sequences, context = self.sequences, self.context
        jump, step_s = self.ends[0][0] - self.steps, 0.0
        room = (self.kv_tokens - context) / sequences
        if room < 1.0 < sequences:
            self._throw_out()
            return
        if 1.0 <= room < jump:  # below 1 it is one request alone, which was checked to fit
            jump = int(room)
        if not self.waiting and self.coming < len(self.arrivals_s):
            step_s = self.step_s(sequences, context)
            until_s = self.arrivals_s[self.coming] - self.now
            if until_s < jump * step_s:
                jump = max(1, math.ceil(until_s / step_s))
        if jump > 1 or not step_s:
            step_s = self.step_s(sequences, context + sequences * (jump - 1) / 2.0)
        seconds = jump * step_s
        self.now += seconds
        self.running_s += seconds * sequences
        self.steps += jump
        self.context += sequences * jump
        self._end()

    def _end(self) -> None:
        """Let go of the requests that have all their tokens."""
        ends, steps = self.ends, self.steps
        while ends and ends[0][0] <= steps:
            end, request = heapq.heappop(ends)
            if self.ends_at[request] != end:
                continue  # thrown out meanwhile
            self.ends_at[request] = -1
            self.last[request] = self.now
            self.sequences -= 1
            self.context -= self.cached[request] + self.left[request]

    def _throw_out(self) -> None:
        """Return the youngest request to the head of the queue; what it has is computed again."""
        while self.ends_at[self.youngest[-1]] < 0:
            self.youngest.pop()
        request = self.youngest.pop()
        still = self.ends_at[request] - self.steps
        produced = self.left[request] - still
        self.ends_at[request] = -1
        self.sequences -= 1
        self.context -= self.cached[request] + produced
        self.prompt[request] = self.cached[request] + produced
        self.cached[request], self.left[request] = 0, still
        self.waiting.appendleft(request)
        self.preempted += 1
        while self.ends and self.ends_at[self.ends[0][1]] != self.ends[0][0]:
            heapq.heappop(self.ends)
