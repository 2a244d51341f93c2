"""Whole workflows on real engines under load: Grape beside stock SGLang."""
