"""Mail providers: each hands one frozen email over, once, and says what the answer proves."""
