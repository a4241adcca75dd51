"""What a client gets of random token streams, against the contract read a second time.

`script/exactness` runs many; the suite runs a few thousand.
"""
