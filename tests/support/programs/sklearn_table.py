"""The table's rows of scikit-learn."""

from __future__ import annotations

from .causes import FLAT, HSTACK, NUMPYS_CODE, THROUGH_A_VIEW
from .record import Program, program, programs

SKLEARN: dict[str, tuple[Program, ...]] = {
    "sklearn.metrics": programs(
        "accuracy_score(labels, predicted); balanced_accuracy_score(labels, predicted) *",
        "brier_score_loss(binary, scores) *; cohen_kappa_score(labels, predicted) *",
        "confusion_matrix(labels, predicted); d2_tweedie_score(XP[:, 0], XP[:, 1])",
        "explained_variance_score(target, X[:, 0])",
        'f1_score(labels, predicted, average="macro") *',
        'fbeta_score(labels, predicted, beta=2.0, average="macro") *',
        'hamming_loss(labels, predicted); jaccard_score(labels, predicted, average="macro")',
        "log_loss(binary, scores) *",
        program("matthews_corrcoef(labels, predicted)", numpy=HSTACK, torch=HSTACK, jax=HSTACK),
        "max_error(target, X[:, 0]); mean_absolute_error(target, X[:, 0])",
        "mean_absolute_percentage_error(target, X[:, 0])",
        "mean_gamma_deviance(XP[:, 0], XP[:, 1]); mean_pinball_loss(target, X[:, 0])",
        "mean_poisson_deviance(XP[:, 0], XP[:, 1])",
        'mean_squared_error(X, X + 1, multioutput="raw_values")',
        "mean_squared_log_error(XP[:, 0], XP[:, 1]); median_absolute_error(target, X[:, 0])",
        "multilabel_confusion_matrix(labels, predicted)",
        "precision_recall_curve(binary, scores) *",
        "precision_recall_fscore_support(labels, predicted)",
        'precision_score(labels, predicted, average="macro"); r2_score(target, X[:, 0])',
        'recall_score(labels, predicted, average="macro"); roc_auc_score(binary, scores) *',
        "roc_curve(binary, scores) *; det_curve(binary, scores) *",
        "root_mean_squared_error(target, X[:, 0]); zero_one_loss(labels, predicted)",
        program("silhouette_score(X, labels)", every=FLAT, slow=True),
        "calinski_harabasz_score(X, labels); davies_bouldin_score(X, labels) *",
    ),
    "sklearn.metrics.pairwise": programs(
        "additive_chi2_kernel(XP); chi2_kernel(XP); cosine_distances(X)",
        "cosine_similarity(X, X + 1); euclidean_distances(X, X + 1); laplacian_kernel(X)",
        "linear_kernel(X); manhattan_distances(X); paired_cosine_distances(X, X + 1)",
        "paired_euclidean_distances(X, X + 1); pairwise_distances(X); polynomial_kernel(X)",
        "rbf_kernel(X); sigmoid_kernel(X)",
    ),
    "sklearn.preprocessing": programs(
        "Binarizer(threshold=0.5).fit_transform(X); KernelCenterer().fit_transform(X @ X.T)",
        "LabelBinarizer().fit_transform(labels); LabelEncoder().fit_transform(labels)",
        "MaxAbsScaler().fit_transform(X); MinMaxScaler().fit_transform(X)",
        "Normalizer().fit_transform(X); PolynomialFeatures(2).fit_transform(X) *",
        program(
            "RobustScaler().fit_transform(X)",
            numpy=NUMPYS_CODE,
            torch=NUMPYS_CODE,
            jax=NUMPYS_CODE,
        ),
        "StandardScaler().fit_transform(X) *; StandardScaler().fit(X).inverse_transform(X) *",
        "label_binarize(labels, classes=[0, 1, 2]); normalize(X)",
    ),
    "sklearn.decomposition": programs(
        "PCA(2).fit_transform(X) *",
        'PCA(2, svd_solver="randomized", random_state=0).fit_transform(X) *',
        "PCA(2, whiten=True).fit(X).inverse_transform(X[:, :2]) *",
    ),
    "sklearn.linear_model": programs(
        'Ridge(solver="svd").fit(X, target).predict(X) *; RidgeCV().fit(X, target).predict(X) *',
        'RidgeClassifier(solver="svd").fit(X, labels).predict(X) *',
        "RidgeClassifierCV().fit(X, labels).decision_function(X) *",
        "LogisticRegression().fit(X, labels).predict_proba(X) *",
        "PoissonRegressor().fit(X, XP[:, 0]).predict(X)",
    ),
    "sklearn.discriminant_analysis": programs(
        "LinearDiscriminantAnalysis().fit(X, labels).predict_proba(X) *",
    ),
    "sklearn.naive_bayes": programs(
        "GaussianNB().fit(X, labels).predict_proba(X) *",
    ),
    "sklearn.mixture": programs(
        program(
            'GaussianMixture(2, init_params="random", random_state=0).fit(X).means_',
            jax=THROUGH_A_VIEW,
            slow=True,
        ),
        'GaussianMixture(2, covariance_type="diag", init_params="random", '
        "random_state=0).fit(X).means_ *",
    ),
    "sklearn.kernel_approximation": programs(
        "Nystroem(n_components=5, random_state=0).fit_transform(X) *",
    ),
    "sklearn.model_selection": programs(
        "train_test_split(X, target, random_state=0)",
        "cross_val_predict(sklearn.naive_bayes.GaussianNB(), X, labels, cv=2) *",
    ),
    "sklearn.utils.extmath": programs(
        "randomized_svd(X, 2, random_state=0) *",
    ),
    "sklearn.calibration": programs(
        'CalibratedClassifierCV(sklearn.naive_bayes.GaussianNB(), method="temperature", '
        "cv=2).fit(X, labels).predict_proba(X) *",
    ),
}
