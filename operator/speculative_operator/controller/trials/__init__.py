"""A revision on trial: what its engines are asked, and how fast they are beside others."""
