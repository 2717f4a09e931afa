"""What a trust region does by itself: the policy loss without a game.

    python -m lbc.studies.trust [--policies 3] [--actions 18] [--updates 1000] [--seeds 4]

The policies are rows of free logits Phi, the same in every state; data comes from the behavior, a share of it
on-policy.  Mapping, ratios, trust region and loss are those that a run uses.  Two questions:

- Advantages are noise, psi is uniform, as before any episode has ended.  Do the policies stay undecided?
- One action is a little better, and the behavior plays by chance (tau near 0), as it does when bandits have
  found that nothing beats chance so far.  Do the policies learn what is better?
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lbc.behavior import build_mapping, build_space
from lbc.cards import resolve
from lbc.config import BehaviorConfig
from lbc.learner.trust import inside_trust_region, trust_centre
from lbc.models.heads import taken
from lbc.targets import importance_ratios, policy_loss

SHOWN = (0, 100, 300, 1000)  # updates
BATCH = 1280  # transitions, as `atari-fast` has them
PULL = 8  # updates between two looks of the behavior at the policies
WIDTH = 0.2
SIGNAL = 0.2  # what the better action is worth, in standard deviations of the noise
CHANCE = 0.05  # tau of a behavior that plays by chance


@dataclass(frozen=True)
class Rule:
    centre: str  # of the trust region: behavior | policy | population | none
    kappa: float = 1.0


@dataclass(frozen=True)
class Task:
    behavior: BehaviorConfig
    policies: int = 3
    actions: int = 18
    updates: int = max(SHOWN)
    signal: float = 0.0  # of action 0
    tau: float | None = None  # of all that is not on-policy; None: drawn

    def psi(self, kappa: float, rng: np.random.Generator) -> np.ndarray:
        """[.., 2M] many to draw from; the on-policy share of them plays one policy as it is."""
        space = build_space(self.behavior, self.policies)
        drawn = np.stack([space.draw(rng.integers(space.regions), rng) for _ in range(4 * BATCH)])
        if self.tau is not None:
            drawn[:, : self.policies] = self.tau
        own = np.flatnonzero(rng.random(len(drawn)) < self.behavior.on_policy_share)
        drawn[own, : self.policies] = kappa
        drawn[own, self.policies :] = np.eye(self.policies)[own % self.policies]
        return drawn


def followed(rule: Rule, task: Task, seed: int) -> list[Tensor]:
    """log pi [N, A] before each update and after the last."""
    generator, rng = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    mapping, choice = build_mapping(task.behavior, task.policies), task.psi(rule.kappa, rng)
    phi = torch.nn.Parameter(0.05 * torch.randn(task.policies, task.actions, generator=generator))
    optimizer = torch.optim.Adam([phi], lr=0.02)
    real = torch.ones(BATCH, dtype=torch.bool)
    seen = []
    for update in range(task.updates):
        if update % PULL == 0:
            acting = phi.detach().clone()
        psi = torch.as_tensor(choice[rng.integers(len(choice), size=BATCH)], dtype=phi.dtype)
        log_mu = mapping.log_mu(acting.unsqueeze(1).expand(-1, BATCH, -1), psi)
        action = torch.multinomial(log_mu.exp(), 1, generator=generator).squeeze(-1)
        log_mu = taken(log_mu, action)
        log_pi = torch.log_softmax(rule.kappa * phi, dim=-1)
        seen.append(log_pi.detach())
        losses = []
        for policy in range(task.policies):
            advantage = torch.randn(BATCH, generator=generator) + task.signal * (action == 0)
            advantage = (advantage - advantage.mean()) / advantage.std()
            now = log_pi[policy, action]
            rho = importance_ratios(now.detach(), log_mu, real, clip=1.05)
            if rule.centre != "none":
                then = torch.log_softmax(rule.kappa * acting, dim=-1)[:, action].T
                centre = trust_centre(rule.centre, log_mu, then, policy)
                rho = rho * inside_trust_region(now - centre, advantage, WIDTH)
            losses.append(policy_loss(now, rho, advantage, real))
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return [*seen, torch.log_softmax(rule.kappa * phi, dim=-1).detach()]


def entropy(log_pi: Tensor) -> float:
    """Mean over the policies, in nats."""
    return float(-(log_pi.exp() * log_pi).sum(-1).mean())


def better(log_pi: Tensor) -> float:
    """Probability of the better action, mean over the policies."""
    return float(log_pi.exp()[:, 0].mean())


def mean_tau(behavior: BehaviorConfig) -> float:
    """Of a psi drawn uniformly: as sharp as the behavior is on average, while preferences are small."""
    tau = build_space(behavior, 1).dimensions[0]
    fine = (np.arange(100) + 0.5) / 100
    return float(np.mean([tau.value(region, fine) for region in range(tau.regions)]))


def _table(title: str, task: Task, seeds: int, number: Callable[[Tensor], float]) -> None:
    shown = [update for update in SHOWN if update <= task.updates]
    print(f"{title}:\n")
    print(f"| trust region around | kappa | {' | '.join(f'{update} updates' for update in shown)} |")
    print(f"|---|---|{'---|' * len(shown)}")
    middle = round(mean_tau(task.behavior), 2)
    for rule in (*map(Rule, ("none", "policy", "population", "behavior")), Rule("behavior", middle)):
        runs = [followed(rule, task, seed) for seed in range(seeds)]
        cells = [f"{statistics.mean(number(run[update]) for run in runs):.2f}" for update in shown]
        print(f"| {rule.centre} | {rule.kappa} | {' | '.join(cells)} |", flush=True)
    print()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    preset = "atari-fast"
    parser.add_argument("--preset", default=preset, help="whose range of tau and on-policy share")
    parser.add_argument("--policies", type=int, default=3)
    parser.add_argument("--actions", type=int, default=18)
    parser.add_argument("--updates", type=int, default=max(SHOWN))
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args(arguments)
    behavior = resolve(options.preset).behavior
    size = (behavior, options.policies, options.actions, options.updates)
    _table("Nothing but noise: entropy in nats", Task(*size), options.seeds, entropy)
    signal = Task(*size, signal=SIGNAL, tau=CHANCE)
    _table("Data by chance: probability of the better action", signal, options.seeds, better)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
