"""Engines that hold arrays, and data frames, beside what their users have without arraybridge."""
