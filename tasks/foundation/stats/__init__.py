"""Statistics that scipy, scikit-learn, statsmodels and krippendorff lack, or lack in a form that can be resampled.

Those libraries take seconds to import and are imported where they are used. What is not computable is NaN
within (arrays hold it), and None as soon as it leaves as a value.
"""
