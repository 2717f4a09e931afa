"""Where the losses come to rest, exactly: expectations over actions instead of samples, no network.

    python -m lbc.studies.fixed_point

In a tabular state the parameters are A (one number per action), V and, with the second head form, V_q.
Data comes from mu = softmax(tau A), or from pi = softmax(A) itself.  Then the gradient of

    E_{a ~ mu} [ 1/2 (v - V)^2 + 5/2 (G - Q)^2 - 5 rho adv log pi(a) ]

is followed (every stop-gradient kept) until nothing moves.  The formulas are those that learners use.

On-policy the answer is known: rho = 1, so V = V^pi and E[G | a] = Q^pi, and the two losses that share A
pull with equal weight, (Q^pi - Q) + (Q^pi - V) = 0 for every action, hence A = 2 (Q^pi - V^pi) up to a
constant: the logits stay at twice the true advantages, however long the training.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lbc.behavior import SHAPINGS, boltzmann
from lbc.config import LearnerConfig, PopulationConfig, TargetConfig
from lbc.models import dueling_q
from lbc.targets import importance_ratios, policy_loss, squared_loss, vtrace

GREEDIEST = math.exp(4.0) - 1.0  # the largest tau of the printed range
_LOSS, _TARGET = LearnerConfig(), TargetConfig()


@dataclass(frozen=True)
class Rest:
    """Where S states came to rest."""

    advantage: Tensor  # [S, A]
    value: Tensor  # [S]
    value_q: Tensor  # [S] the state value inside Q
    log_pi: Tensor  # [S, A]
    log_mu: Tensor  # [S, A]
    residual: float  # largest gradient that is left

    @property
    def q(self) -> Tensor:
        return dueling_q(self.advantage, self.log_pi, self.value_q)

    def clipped(self) -> Tensor:
        """c(a) = min(pi / mu, clip): [S, A]."""
        real = torch.ones_like(self.log_pi, dtype=torch.bool)
        return importance_ratios(self.log_pi, self.log_mu, real, _TARGET.clip_c)


def at_rest(backup: Tensor, correction: Tensor, tau: float | None = None, head: str = "tied") -> Rest:
    """The fixed point of S independent states.

    backup: [S, A] r + d V(s') of each action;  correction: [S, A] what Retrace adds to it from later
    steps;  tau: mu = softmax(tau A), or None for data of pi itself;  head: tied | own.
    """
    states, actions = backup.shape
    x = torch.zeros(states, actions + 2, dtype=torch.float64)  # A, V, V_q (idle in a tied head)
    x[:, actions:] = backup.mean(-1, keepdim=True)

    def descent(x: Tensor) -> Tensor:
        """[K S, P] -> [K S, P]: the states may come several times over."""
        copies = (len(x) // states, 1)
        x = x.detach().requires_grad_()
        loss = _loss(x, backup.repeat(copies), (backup + correction).repeat(copies), tau, head)
        return -torch.autograd.grad(loss, x)[0]

    x, residual = _settle(descent, x)
    assert residual < 1e-6, f"still moving at {residual:.1e}"
    log_pi, log_mu = _policies(x[:, :actions], tau)
    value = x[:, actions]
    return Rest(
        x[:, :actions], value, value if head == "tied" else x[:, actions + 1], log_pi, log_mu, residual
    )


def _policies(advantage: Tensor, tau: float | None) -> tuple[Tensor, Tensor]:
    one = torch.ones(advantage.shape[:-1], dtype=advantage.dtype)
    return boltzmann(advantage, one), boltzmann(advantage, one if tau is None else tau * one)


def _loss(x: Tensor, backup: Tensor, q_target: Tensor, tau: float | None, head: str) -> Tensor:
    """The learner's loss, in expectation over the actions of mu; summed over the states.

    Every (state, action) is one column of a batch of one step.
    """
    states, actions = backup.shape
    advantage, value, value_q = x[:, :actions], x[:, actions], x[:, actions + 1]
    log_pi, log_mu = _policies(advantage, tau)
    real = torch.ones(1, states * actions, dtype=torch.bool)
    rho = importance_ratios(log_pi.detach().view(1, -1), log_mu.detach().view(1, -1), real, _TARGET.clip_rho)
    v = value.repeat_interleave(actions)
    q = dueling_q(advantage, log_pi, value.detach() if head == "tied" else value_q)
    # The future is inside `backup`, so the step looks like the last of an episode: discount 0.
    zero = torch.zeros_like(rho)
    v_target, policy_advantage = vtrace(
        torch.stack([v, zero[0]]).detach(), backup.view(1, -1), zero, rho, rho
    )
    loss = (
        _LOSS.v_loss_scaling * torch.vmap(squared_loss)(v_target[0], v, real[0])
        + _LOSS.q_loss_scaling * torch.vmap(squared_loss)(q_target.flatten(), q.flatten(), real[0])
        + _LOSS.pi_loss_scaling
        * torch.vmap(policy_loss)(log_pi.flatten(), rho[0], policy_advantage[0], real[0])
    )
    return (log_mu.detach().exp().flatten() * loss).sum()


def _settle(
    descent: Callable[[Tensor], Tensor],
    x: Tensor,
    tolerance: float = 1e-8,
    limit: int = 3000,
    reach: float = 0.1,
) -> tuple[Tensor, float]:
    """Follows dx/dt = descent(x), [S, P], to rest by implicit steps, none of them longer than ``reach``.

    Rarely played actions move a thousand times slower than the others; an explicit method would wait
    for them.  The Jacobian is taken by differences, because autograd holds stop-gradients constant.
    """
    size, epsilon = x.shape[1], 1e-7
    eye = torch.eye(size, dtype=x.dtype)
    step = torch.full((len(x), 1), 0.01, dtype=x.dtype)
    motion = descent(x)
    for _ in range(limit):
        if float(motion.abs().max()) < tolerance:
            break
        nudged = (x + epsilon * eye[:, None]).flatten(0, 1)  # [P S, P]
        jacobian = (descent(nudged).view(size, *x.shape) - motion).permute(1, 2, 0) / epsilon
        change = torch.linalg.solve(eye / step[..., None] - jacobian, motion)
        length = change.abs().amax(-1, keepdim=True)
        x = torch.where(length <= reach, x + change, x)
        step = torch.where(length <= 0.5 * reach, 1.5 * step, torch.where(length > reach, 0.4 * step, step))
        step = step.clamp(max=1e6)
        motion = descent(x)
    return x, float(motion.abs().max())


@dataclass(frozen=True)
class Gap:
    """A bandit with one good arm, at rest."""

    logits: float  # between the good arm and the others
    others: float  # share of mu on the others: where it is 0, nothing is learned and nothing moves


def bandit(tau: float | None, head: str = "tied", arms: int = 18, gap: float = 0.3) -> Gap:
    """One arm pays ``gap``, the others nothing."""
    reward = torch.zeros(1, arms, dtype=torch.float64)
    reward[0, 0] = gap
    rest = at_rest(reward, torch.zeros_like(reward), tau, head)
    advantage = rest.advantage[0]
    return Gap(float(advantage[0] - advantage[1:].mean()), float(rest.log_mu[0, 1:].exp().sum()))


@dataclass(frozen=True)
class Catches:
    """Share of the balls that are caught at the fixed point."""

    target: float  # by pi = softmax(A)
    greediest: float  # by the behavior softmax(GREEDIEST A)


def catch(
    shaping: str,
    discount: float,
    tau: float | None = None,
    columns: int = 11,
    actions: int = 3,
    steps: int = 16,
) -> Catches:
    """Catch with balls that fall for ``steps`` steps, solved from the last row upwards.

    A state is (ball's column, paddle's column, row).  At rest E[v - V] = 0 in every state, so V-trace
    needs only V of the next state; Retrace also carries E_mu[c (G - Q)] upwards, which is not 0, because
    the policy loss holds Q away from its target.
    """
    move = torch.zeros(actions, dtype=torch.long)
    move[0], move[2] = -1, 1
    after = (torch.arange(columns)[:, None] + move).clamp(0, columns - 1)  # [paddle, action] -> paddle
    caught = torch.eye(columns, dtype=torch.float64)  # [ball, paddle] once the ball has landed
    value = SHAPINGS[shaping](2.0 * caught - 1.0)  # the last step's reward, as if it were V(s')
    later = torch.zeros_like(value)  # E_mu[c (G - Q)]
    target, greediest = caught, caught
    d = 1.0
    for _ in range(steps):
        rest = at_rest(d * value[:, after].flatten(0, 1), d * later[:, after].flatten(0, 1), tau)
        q_target = d * (value + later)[:, after].flatten(0, 1)
        later = (rest.log_mu.exp() * rest.clipped() * (q_target - rest.q)).sum(-1).view_as(caught)
        value = rest.value.view_as(caught)
        target = _expected(rest.log_pi, target[:, after])
        greediest = _expected(_policies(rest.advantage, GREEDIEST)[1], greediest[:, after])
        d = discount
    start = columns // 2
    return Catches(float(target[:, start].mean()), float(greediest[:, start].mean()))


def _expected(log_p: Tensor, x: Tensor) -> Tensor:
    """[S, A] policy and [ball, paddle, A] outcomes -> [ball, paddle]."""
    return (log_p.exp().view_as(x) * x).sum(-1)


BEHAVIORS: dict[str, float | None] = {
    "of pi itself": None,
    "tau = 5": 5.0,
    "tau = 20": 20.0,
    f"tau = {GREEDIEST:.0f}": GREEDIEST,
}
FROZEN = 1e-9  # share of the other arms below which the gap is where the path happened to leave it


def bandit_table() -> str:
    lines = [
        "| data | Q = Abar + sg(V) | others played | Q = Abar + V_q | others played |",
        "|---|---|---|---|---|",
    ]
    for name, tau in BEHAVIORS.items():
        cells = []
        for head in ("tied", "own"):
            found = bandit(tau, head)
            cells += [f"{found.logits:.3f}" if found.others > FROZEN else "frozen", f"{found.others:.1e}"]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join(lines)


def catch_table() -> str:
    population = PopulationConfig()
    policies = list(zip(population.shapings, population.discounts, strict=True))
    lines = ["| data |" + "".join(f" {shaping}, {discount} |" for shaping, discount in policies)]
    lines.append("|---|" + "---|" * len(policies))
    for name, tau in BEHAVIORS.items():
        cells = [catch(shaping, discount, tau) for shaping, discount in policies]
        lines.append(f"| {name} |" + "".join(f" {c.target:.3f} / {c.greediest:.3f} |" for c in cells))
    return "\n".join(lines)


def main() -> None:
    argparse.ArgumentParser(
        description="Fixed points of the printed losses: an 18-armed bandit and a 16-step Catch."
    ).parse_args()
    torch.set_num_threads(1)
    print("18-armed bandit, true gap 0.30: logit gap at rest, by the behavior that made the data\n")
    print(bandit_table(), flush=True)
    print("\nothers played: share of mu on the 17 other arms; frozen: too rare to ever move the gap again")
    print("\nCatch, 16 steps, 11 columns, 3 actions: balls caught at rest, by pi / by softmax(54 A)\n")
    print(catch_table())


if __name__ == "__main__":
    main()
