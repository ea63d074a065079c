"""What people say: values on the command line, defaults in settings files."""
