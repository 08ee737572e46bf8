"""What the four mappings of attention share: parameters, truth, closed formulas of their traffic, one way to run them.

The mappings themselves are ``designs.attention_layerwise``, ``designs.attention_dato``, ``designs.attention_iron`` and
``designs.attention_fused``.
"""
