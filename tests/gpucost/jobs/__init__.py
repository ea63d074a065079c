"""Jobs on machines of a launch: files there, the command, results here, over a real sshd."""
