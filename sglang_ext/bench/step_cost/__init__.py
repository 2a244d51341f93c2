"""`grape profile`: steps of many make-ups on a real engine, and the cost model that is fitted to them."""
