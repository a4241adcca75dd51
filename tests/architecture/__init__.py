"""The shape of the code: what may import what, each rule shown to notice when it is broken."""
