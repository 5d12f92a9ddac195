"""The outside behind the ports; each adapter declares what its provider lets us conclude."""
