"""Where does learning break on the way from IMPALA to complete LBC-BM?  Short Pong, one switch a rung.

The first rung that falls behind the one below it is where the defect, or the weakness, is.  The last
rung of `CLIMB` is complete LBC-BM in reading 'decoupled' (a test holds it to that); what follows
changes one thing about it.
"""

from __future__ import annotations

from lbc.studies.plan import Study, Variant

# Each rung keeps the switches of all rungs before it.
CLIMB: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("IMPALA, one use", ("buffer.replay=1",)),
    ("replay 2: IMPALA", ("buffer.replay=2",)),
    ("shaped rewards", ('population.shapings=["sqrt"]',)),
    ("Retrace head", ("learner.q_loss_scaling=0.5",)),
    ("PopArt", ("learner.popart=true",)),
    (
        "auxiliary tasks",
        (
            "model.auxiliary_forward=true",
            "model.auxiliary_inverse=true",
            "target.clip_rho=1.05",
            "target.clip_c=1.05",
        ),
    ),
    (
        "three policies",  # each in a third of the environments, at tau = 1
        (
            "population.discounts=[0.99, 0.995, 0.98]",
            'population.shapings=["sqrt", "log", "tanh"]',
            "behavior.components=[]",
        ),
    ),
    ("mixture, psi by rule", ("behavior.on_policy_share=0.25",)),  # as on the card: a quarter stays as it was
    ("mixture, random psi", ("controller.kind=random",)),
    ("bandits: LBC-BM", ("controller.kind=voting",)),
)

READINGS = ("printed", "entropy-controlled", "scale-free")


def study() -> Study:
    variants: list[Variant] = []
    switches: tuple[str, ...] = ()
    for label, switch in CLIMB:
        switches += switch
        variants.append(Variant(label, "short-pong+decoupled+impala", switches))
    variants += [Variant(f"LBC-BM, {reading}", f"short-pong+{reading}") for reading in READINGS]
    recurrent = ("model.lstm_units=256", "buffer.burn_in=16")  # burn-in of half a sequence, as in the paper
    variants.append(Variant("LBC-BM, LSTM and burn-in", "short-pong+decoupled", recurrent))
    return Study(
        "ladder",
        "Where does learning break on the way from IMPALA to complete LBC-BM?",
        tuple(variants),
        references=(("-10", -10.0),),
    )
