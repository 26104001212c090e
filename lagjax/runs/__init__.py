"""Long runs: jobs that can be repeated, kept in a folder as they finish, spread over processes and machines."""
