-- one end of the 95 % interval of a share, after Wilson: `hits` of `n`, the lower (side -1) or the upper end (side 1)
create macro wilson(hits, n, side) as
round(
    (hits / nullif(n, 0) + 1.9207 / n + side * 1.96 * sqrt(hits / n * (1 - hits / n) / n + 0.9604 / n / n))
    / (1 + 3.8416 / n), 4
)
