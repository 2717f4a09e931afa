"""A shared target policy consists of all policies, so a learner of it looks at the others, too."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lbc.behavior.population import PolicyHyperParameters
from lbc.models.network import Outputs, PolicyNetwork
from lbc.parameters import ParameterServer
from lbc.types import Batch


def unroll(policy: PolicyHyperParameters, network: PolicyNetwork, batch: Batch) -> Outputs:
    """Burn-in without gradient from the stored state, then the T + 1 rows with gradient."""
    state = batch.state[policy.index]
    reward = policy.shape(batch.reward)
    rows = (batch.first, batch.previous_action, reward)
    cut = batch.burn_in
    if cut and state.shape[-1]:
        with torch.no_grad():
            state = network(batch.stack(0, cut), *(x[:cut] for x in rows), state).state
    return network(batch.stack(cut, len(batch.first)), *(x[cut:] for x in rows), state)


class Peers:
    """Copies of the other policies, as their learners pushed them last: no learner waits for another."""

    def __init__(
        self, networks: Mapping[PolicyHyperParameters, PolicyNetwork], server: ParameterServer
    ) -> None:
        self._networks = networks
        self._server = server
        self._versions = dict.fromkeys(networks, -1)
        self.pull()

    def pull(self) -> None:
        for policy, network in self._networks.items():
            self._versions[policy] = self._server.pull(policy.index, network, self._versions[policy])

    @torch.no_grad()
    def phi(self, batch: Batch) -> dict[int, Tensor]:
        """Policy -> its preferences in the T + 1 rows: [T + 1, B, A]."""
        return {policy.index: unroll(policy, net, batch).phi for policy, net in self._networks.items()}
