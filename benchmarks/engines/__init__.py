"""Engines that hold arrays, and data frames, compared with the best alternative without arraybridge."""
