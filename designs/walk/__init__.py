"""One object, sent on by one buffer descriptor: a bench to try layout transforms and access patterns on."""
