"""The array API standard over Arrays of each library: ``arraybridge.xp.numpy`` and so on."""
