"""Managed node groups of Amazon EKS clusters, through boto3."""
