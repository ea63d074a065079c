"""Amazon Web Services, through boto3."""
