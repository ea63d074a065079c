"""The measured command: started as the caller would, its signals served."""
