"""What noise alone does to the policies: the policy loss with advantages that say nothing.

    python -m lbc.studies.noise [--policies 3] [--actions 18] [--updates 1000] [--seeds 4]

Three policies are three rows of free logits Phi, the same in every state.  Data comes from the behavior with
psi drawn uniformly, as before any episode has ended; a share of it is on-policy.  Advantages are drawn from a
normal distribution, whatever was done.  An algorithm that adds nothing of its own would keep the entropy near
its maximum.  Mapping, ratios, trust region and loss are those that a run uses.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lbc.behavior import BehaviorSpace, build_mapping, build_space
from lbc.cards import resolve
from lbc.config import BehaviorConfig
from lbc.learner.learner import inside_trust_region
from lbc.models.heads import taken
from lbc.targets import importance_ratios, policy_loss

SHOWN = (0, 100, 300, 1000)  # updates
BATCH = 1280  # transitions, as `atari-fast` has them
PULL = 8  # updates between two looks of the behavior at the policies
WIDTH = 0.2


@dataclass(frozen=True)
class Rule:
    centre: str  # of the trust region: behavior | policy | none
    kappa: float = 1.0


def entropies(
    rule: Rule, behavior: BehaviorConfig, policies: int, actions: int, updates: int, seed: int
) -> list[float]:
    """Mean entropy of the policies before each update and after the last, in nats."""
    generator, rng = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    mapping = build_mapping(behavior, policies)
    drawn = _drawn(build_space(behavior, policies), rng)
    on_policy = np.arange(BATCH) < behavior.on_policy_share * BATCH
    as_it_is = np.column_stack(
        [np.full((BATCH, policies), rule.kappa), np.eye(policies)[np.arange(BATCH) % policies]]
    )
    phi = torch.nn.Parameter(0.05 * torch.randn(policies, actions, generator=generator))
    optimizer = torch.optim.Adam([phi], lr=0.02)
    seen = []
    for update in range(updates):
        if update % PULL == 0:
            acting = phi.detach().clone()
        psi = np.where(on_policy[:, None], as_it_is, drawn[rng.integers(len(drawn), size=BATCH)])
        with torch.no_grad():
            log_mu = mapping.log_mu(
                acting.unsqueeze(1).expand(-1, BATCH, -1), torch.as_tensor(psi, dtype=phi.dtype)
            )
            action = torch.multinomial(log_mu.exp(), 1, generator=generator).squeeze(-1)
            log_mu = taken(log_mu, action)
        log_pi = torch.log_softmax(rule.kappa * phi, dim=-1)
        seen.append(_entropy(log_pi))
        loss = torch.zeros(())
        real = torch.ones(BATCH, dtype=torch.bool)
        for policy in range(policies):
            advantage = torch.randn(BATCH, generator=generator)
            now = log_pi[policy, action]
            rho = importance_ratios(now.detach(), log_mu, real, clip=1.05)
            if rule.centre != "none":
                then = torch.log_softmax(rule.kappa * acting[policy], dim=-1)[action]
                centre = log_mu if rule.centre == "behavior" else then
                rho = rho * inside_trust_region(now - centre, advantage, WIDTH)
            loss = loss + policy_loss(now, rho, advantage, real)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return [*seen, _entropy(torch.log_softmax(rule.kappa * phi, dim=-1))]


def _drawn(space: BehaviorSpace, rng: np.random.Generator) -> np.ndarray:
    """[.., 2M] many psi, each region as likely as any other."""
    return np.stack([space.draw(rng.integers(space.regions), rng) for _ in range(4 * BATCH)])


def _entropy(log_pi: Tensor) -> float:
    return float(-(log_pi.exp() * log_pi).sum(-1).mean().detach())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--preset", default="atari-fast+decoupled", help="whose range of tau and on-policy share"
    )
    parser.add_argument("--policies", type=int, default=3)
    parser.add_argument("--actions", type=int, default=18)
    parser.add_argument("--updates", type=int, default=max(SHOWN))
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args(arguments)
    behavior = resolve(options.preset).behavior
    middle = round(_mean_tau(behavior), 2)
    shown = [update for update in SHOWN if update <= options.updates]
    print(f"| trust region around | kappa | {' | '.join(f'{update} updates' for update in shown)} |")
    print(f"|---|---|{'---|' * len(shown)}")
    for rule in (Rule("none"), Rule("policy"), Rule("behavior"), Rule("behavior", middle)):
        runs = [
            entropies(rule, behavior, options.policies, options.actions, options.updates, seed)
            for seed in range(options.seeds)
        ]
        cells = [f"{statistics.mean(run[update] for run in runs):.2f}" for update in shown]
        print(f"| {rule.centre} | {rule.kappa} | {' | '.join(cells)} |", flush=True)
    return 0


def _mean_tau(behavior: BehaviorConfig) -> float:
    """Of a psi drawn uniformly: as sharp as the behavior is on average, while preferences are small."""
    tau = build_space(behavior, 1).dimensions[0]
    fine = (np.arange(100) + 0.5) / 100
    return float(np.mean([tau.value(region, fine) for region in range(tau.regions)]))


if __name__ == "__main__":
    raise SystemExit(main())
